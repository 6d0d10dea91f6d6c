select
    if(
      (monotonically_increasing_id() & 8589934591) = 0,
      concat(concat(cast(x'' as string), concat_ws(',', concat('"', replace(replace('id', '\\', '\\\\'), '"', '\\"'), '"'), concat('"', replace(replace('status', '\\', '\\\\'), '"', '\\"'), '"'), concat('"', replace(replace('day', '\\', '\\\\'), '"', '\\"'), '"'), concat('"', replace(replace('seen', '\\', '\\\\'), '"', '\\"'), '"'), concat('"', replace(replace('photo', '\\', '\\\\'), '"', '\\"'), '"'), concat('"', replace(replace('it\'s `odd`', '\\', '\\\\'), '"', '\\"'), '"'))), '\r\n', line),
      line
    ) as line
  from (
    select concat_ws(',', coalesce(cast(`id` as string), 'null'), coalesce(concat('"', replace(replace(cast(`status` as string), '\\', '\\\\'), '"', '\\"'), '"'), 'null'), coalesce(cast(`day` as string), 'null'), coalesce(cast(timestamp_ntz'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, cast(unix_micros(`seen`) as decimal(20, 0)) / 1000000) as string), 'null'), coalesce(concat('"', replace(replace(cast(`photo` as string), '\\', '\\\\'), '"', '\\"'), '"'), 'null'), coalesce(concat('"', replace(replace(cast(`it's ``odd``` as string), '\\', '\\\\'), '"', '\\"'), '"'), 'null')) as line
    from (
      select * from rows_that_land
    )
  )
