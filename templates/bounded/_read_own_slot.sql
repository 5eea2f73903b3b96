-- Reads the slot first: an UPDATE that finds too little would keep a lock on it until the end of the transaction.
{{ table.over_snapshot()|before(0) }}SELECT MAX({{ table.count() }})
  INTO v_have
  FROM {{ table.name }}
 WHERE {{ own }}
   AND {{ table.slot() }} = v_slot;
