{{ table.counted_from() }}MOD(
  CONNECTION_ID() * @@auto_increment_increment + @@auto_increment_offset - 1,
  {{ usable|indent(2) }})
