-- From templates/{{ create.template }}
DROP {{ kind }} IF EXISTS {{ name }};

DELIMITER ;;
{{ create.statement }};;
DELIMITER ;
