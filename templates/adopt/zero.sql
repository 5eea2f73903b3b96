UPDATE {{ adopt.from() }}
   SET {{ source.column }} = {{ source.empty() }}
{%- for column in adopt.unchanged() %},
       {{ column }} = {{ column }}
{%- endfor %}
 WHERE {{ condition }}
