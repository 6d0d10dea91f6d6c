select
    if(
      (monotonically_increasing_id() & 8589934591) = 0,
      concat(concat(cast(x'' as string), concat_ws(';', concat('"', replace('id', '"', '""'), '"'), concat('"', replace('status', '"', '""'), '"'))), '\r', line),
      line
    ) as line
  from (
    select concat_ws(';', coalesce(cast(`id` as string), ''), coalesce(concat('"', replace(cast(`status` as string), '"', '""'), '"'), '')) as line
    from (
      select * from rows_that_land
    )
  )
