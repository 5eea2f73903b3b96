CREATE OR REPLACE
{%- if let Some(definer) = package.options.definer.as_ref() %}
  DEFINER = {{ definer }}
{%- endif %}
  SQL SECURITY {{ package.options.security.sql() }}
  VIEW {{ package.totals }} AS
{{ table.record_totals() }}
