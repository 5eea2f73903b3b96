{% match table.package.options.servers -%}
{% when Servers::Both -%}
/*!80000 {{ table.outside_transaction("v_autocommit") }} */
/*M!100000 SET v_autocommit = @@autocommit AND NOT @@in_transaction; */
{%- when Servers::Mysql -%}
{{ table.outside_transaction("v_autocommit") }}
{%- when Servers::Mariadb -%}
SET v_autocommit = @@autocommit AND NOT @@in_transaction;
{%- endmatch %}
IF NOT v_autocommit THEN
  -- In a transaction, an UPDATE that finds too little would keep a lock on the slot until the end.
  {{ table.over_snapshot()|before(2) }}SELECT MAX({{ table.count() }})
    INTO v_have
    FROM {{ table.name }}
   WHERE {{ own|indent(2) }}
     AND {{ table.slot() }} = v_slot;
END IF;
