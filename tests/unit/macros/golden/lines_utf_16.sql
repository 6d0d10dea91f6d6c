select
    if(
      (monotonically_increasing_id() & 8589934591) = 0,
      concat(concat(cast(x'FFFE' as string), cast(encode(concat_ws(',', concat('"', replace(replace('id', '\\', '\\\\'), '"', '\\"'), '"'), concat('"', replace(replace('status', '\\', '\\\\'), '"', '\\"'), '"')), 'UTF-16LE') as string)), '\r\u0000\n\u0000', line),
      line
    ) as line
  from (
    select cast(encode(concat_ws(',', coalesce(cast(`id` as string), 'null'), coalesce(if(not is_valid_utf8(cast(`status` as string)), raise_error('A value of the column status has bytes that are no text. Let the model select base64(`status`). Nothing was published.'), concat('"', replace(replace(cast(`status` as string), '\\', '\\\\'), '"', '\\"'), '"')), 'null')), 'UTF-16LE') as string) as line
    from (
      select * from rows_that_land
    )
  )
