DELIMITER ;;

{% if !drop.is_empty() %}{{ drop }};
{% endif -%}
{{ create }};;
DELIMITER ;
