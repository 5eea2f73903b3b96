{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }}
)
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Private. Creates slot 0 of a record if it does not exist, so that a statement can lock it first. A range that ends at slot 0 does
  not touch the record before this one.
{%- endfilter %}
BEGIN
  {{ table.first_row()|indent(2) }}
END
