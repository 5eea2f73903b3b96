{%- if let Some(definer) = package.options.definer.as_ref() %} DEFINER = {{ definer }}{% endif -%}
