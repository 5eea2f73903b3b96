-- With a binary log, only an account with SUPER can create functions, unless log_bin_trust_function_creators is set. The
-- privileges of roles are not visible here: with a role, the server itself reports error 1419.
SET @slotted_problem = (
  SELECT {% filter sql_string %}an account without SUPER cannot create the function {{ package.routine(R::Get).expect("the scripts check an existing function").name() }} on a server with a binary log. Run as an administrator: SET GLOBAL log_bin_trust_function_creators = ON. Or render the package with --no-function{% endfilter %}
    FROM DUAL
   WHERE @@GLOBAL.log_bin = 1
     AND @@GLOBAL.log_bin_trust_function_creators = 0
     AND COALESCE(CURRENT_ROLE(), 'NONE') = 'NONE'
     AND NOT EXISTS (
      SELECT *
        FROM information_schema.USER_PRIVILEGES
       WHERE PRIVILEGE_TYPE = 'SUPER'
         AND TRIM(BOTH '''' FROM REPLACE(GRANTEE, '''@''', '@')) = CURRENT_USER()
    )
);
{% include "files/_raise.sql" %}
