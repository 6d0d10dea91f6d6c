select
    if(
      (monotonically_increasing_id() & 8589934591) = 0,
      concat(concat(cast(x'' as string), concat_ws('	', concat('\'', replace(replace('id', '/', '//'), '\'', '/\''), '\''), concat('\'', replace(replace('status', '/', '//'), '\'', '/\''), '\''))), '\n', line),
      line
    ) as line
  from (
    select concat_ws('	', coalesce(cast(`id` as string), 'NULL\'s'), coalesce(concat('\'', replace(replace(cast(`status` as string), '/', '//'), '\'', '/\''), '\''), 'NULL\'s')) as line
    from (
      select * from rows_that_land
    )
  )
