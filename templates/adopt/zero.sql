UPDATE {{ adopt.from() }}
   SET {{ source.column }} = 0
{%- for column in adopt.unchanged() %},
       {{ column }} = {{ column }}
{%- endfor %}
 WHERE {{ condition }}
