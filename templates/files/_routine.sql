-- From templates/{{ create.template }}
{{ drop|before(0) }}
DELIMITER ;;
{{ create.statement }};;
DELIMITER ;
