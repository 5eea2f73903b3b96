-- From templates/{{ file }}
DROP {{ kind }} IF EXISTS {{ name }};

DELIMITER ;;
{{ create }};;
DELIMITER ;
