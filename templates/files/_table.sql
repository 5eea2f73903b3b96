{%- let table = script.create_table() -%}
-- From templates/{{ table.template }}
{{ table.statement }}
