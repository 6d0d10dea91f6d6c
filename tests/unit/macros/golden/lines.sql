select
    if(
      (monotonically_increasing_id() & 8589934591) = 0,
      concat(concat(cast(x'' as string), concat_ws(',', concat('"', replace(replace('id', '\\', '\\\\'), '"', '\\"'), '"'), concat('"', replace(replace('status', '\\', '\\\\'), '"', '\\"'), '"'))), '\r\n', line),
      line
    ) as line
  from (
    select concat_ws(',', coalesce(cast(`id` as string), 'null'), coalesce(concat('"', replace(replace(cast(`status` as string), '\\', '\\\\'), '"', '\\"'), '"'), 'null')) as line
    from (
      select * from rows_that_land
    )
  )
