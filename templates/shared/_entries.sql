JSON_TABLE({{ source }}, '$[*]' COLUMNS (
  entry FOR ORDINALITY,
{{- table.key.json_columns() }}
{%- if !check.is_empty() %}
{{- table.key.json_values() }}
  json_amount JSON PATH '$[{{ table.key.columns().len() }}]',
  more INT EXISTS PATH '$[{{ table.key.columns().len() + 1 }}]',
{%- endif %}
  p_amount BIGINT PATH '$[{{ table.key.columns().len() }}]'
)) AS entries
