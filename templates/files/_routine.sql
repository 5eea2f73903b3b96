DELIMITER ;;

-- From templates/{{ create.template }}
{% if !drop.is_empty() %}{{ drop }};
{% endif -%}
{{ create.statement }};;
DELIMITER ;
