CREATE{{ package.options.servers.or_replace() }}
{%- if let Some(definer) = package.options.definer.as_ref() %} DEFINER = {{ definer }}{% endif %} {{ kind }} {{ r.name }}
