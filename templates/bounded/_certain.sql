-- Outside a transaction, each SELECT has a new snapshot. At READ UNCOMMITTED, a SELECT sees changes that are rolled back later.
SET v_new = p_autocommit AND {% match package.options.servers -%}
{% when Servers::Both %}/*!80000 @@SESSION.transaction_isolation */ /*M!100000 @@SESSION.tx_isolation */
{%- when Servers::Mysql %}@@SESSION.transaction_isolation
{%- when Servers::Mariadb %}@@SESSION.tx_isolation
{%- endmatch %} <> 'READ-UNCOMMITTED';
{%- if package.options.servers != Servers::Mysql %}
-- A snapshot of MariaDB can have a change without an earlier one that commits at this moment. The next one has both.
IF v_new{% if package.options.servers == Servers::Both %} /*!80000 AND FALSE */{% endif %} THEN
  SELECT {{ total }}
    INTO v_again
    FROM {{ table.name }}
   WHERE {{ table.key.equals("")|indent(2) }};
  SET v_new = v_again <=> v_total;
END IF;
{%- endif %}
