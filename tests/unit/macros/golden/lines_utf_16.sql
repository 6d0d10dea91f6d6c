select
    if(
      (monotonically_increasing_id() & 8589934591) = 0,
      concat(concat(cast(x'FFFE' as string), cast(encode(concat_ws(',', concat('"', replace(replace('id', '\\', '\\\\'), '"', '\\"'), '"'), concat('"', replace(replace('status', '\\', '\\\\'), '"', '\\"'), '"')), 'UTF-16LE') as string)), '\r\u0000\n\u0000', line),
      line
    ) as line
  from (
    select cast(encode(concat_ws(',', coalesce(cast(`id` as string), 'null'), coalesce(concat('"', replace(replace(cast(`status` as string), '\\', '\\\\'), '"', '\\"'), '"'), 'null')), 'UTF-16LE') as string) as line
    from (
      select * from rows_that_land
    )
  )
