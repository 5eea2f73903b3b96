JSON_TABLE(CONCAT('[0', REPEAT(',0', {{ limit }} - 1), ']'), '$[*]' COLUMNS (number FOR ORDINALITY))
