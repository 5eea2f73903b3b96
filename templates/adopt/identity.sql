{#- The end of a long text is a part of the hash of all of it. -#}
IF(CHAR_LENGTH({{ text }}) <= {{ DESCRIPTION_MAX }},
         {{ text }},
         CONCAT(LEFT({{ text }}, {{ DESCRIPTION_MAX - 17 }}), ' ', LEFT(SHA2({{ text }}, 256), 16)))
