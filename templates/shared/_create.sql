CREATE{{ package.options.servers.or_replace() }}
{%- include "shared/_definer.sql" %} {{ kind }} {{ r.name }}
