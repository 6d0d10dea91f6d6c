select
    if(
      (monotonically_increasing_id() & 8589934591) = 0,
      concat(concat(cast(x'' as string), concat_ws(',', concat('"', replace(replace('id', '\\', '\\\\'), '"', '\\"'), '"'), concat('"', replace(replace('status', '\\', '\\\\'), '"', '\\"'), '"'), concat('"', replace(replace('day', '\\', '\\\\'), '"', '\\"'), '"'), concat('"', replace(replace('seen', '\\', '\\\\'), '"', '\\"'), '"'), concat('"', replace(replace('photo', '\\', '\\\\'), '"', '\\"'), '"'), concat('"', replace(replace('it\'s `odd`', '\\', '\\\\'), '"', '\\"'), '"'))), '\r\n', line),
      line
    ) as line
  from (
    select concat_ws(',', coalesce(cast(`id` as string), 'null'), coalesce(if(not is_valid_utf8(cast(`status` as string)), raise_error('A value of the column status has bytes that are no text. Let the model select base64(`status`). Nothing was published.'), concat('"', replace(replace(cast(`status` as string), '\\', '\\\\'), '"', '\\"'), '"')), 'null'), coalesce(if(cast(`day` as string) not rlike '^[0-9]{4}-', raise_error('A value of the column day is before the year 1 or after 9999. Make it NULL in the model. Nothing was published.'), cast(`day` as string)), 'null'), coalesce(if(cast(timestamp_ntz'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, cast(unix_micros(`seen`) as decimal(20, 0)) / 1000000) as string) not rlike '^[0-9]{4}-', raise_error('A value of the column seen is before the year 1 or after 9999. Make it NULL in the model. Nothing was published.'), cast(timestamp_ntz'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, cast(unix_micros(`seen`) as decimal(20, 0)) / 1000000) as string)), 'null'), coalesce(if(not is_valid_utf8(cast(`photo` as string)), raise_error('A value of the column photo has bytes that are no text. Let the model select base64(`photo`). Nothing was published.'), concat('"', replace(replace(cast(`photo` as string), '\\', '\\\\'), '"', '\\"'), '"')), 'null'), coalesce(if(not is_valid_utf8(cast(`it's ``odd``` as string)), raise_error('A value of the column it\'s `odd` has bytes that are no text. Let the model select base64(`it\'s ``odd```). Nothing was published.'), concat('"', replace(replace(cast(`it's ``odd``` as string), '\\', '\\\\'), '"', '\\"'), '"')), 'null')) as line
    from (
      select * from rows_that_land
    )
  )
