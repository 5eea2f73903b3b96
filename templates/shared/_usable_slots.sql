IF({{ slots }} < @@auto_increment_increment,
   {{ slots }},
   {{ slots }} - MOD({{ slots }}, @@auto_increment_increment))
