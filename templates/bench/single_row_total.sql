SELECT counter
  FROM single_row
 WHERE id = 1
