UPDATE single_row
   SET counter = counter + 1
 WHERE id = 1
