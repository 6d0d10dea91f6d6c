select
    if(
      (monotonically_increasing_id() & 8589934591) = 0,
      concat(concat(cast(x'' as string), concat_ws(',', if(contains('id', '"'), raise_error('The name of the column id has the quote character in it. Set delimited.escape_character. Nothing was published.'), concat('"', 'id', '"')), if(contains('status', '"'), raise_error('The name of the column status has the quote character in it. Set delimited.escape_character. Nothing was published.'), concat('"', 'status', '"')))), '\r\n', line),
      line
    ) as line
  from (
    select concat_ws(',', coalesce(cast(`id` as string), 'null'), coalesce(if(contains(cast(`status` as string), '"'), raise_error('A value of the column status has the quote character in it. Set delimited.escape_character. Nothing was published.'), concat('"', cast(`status` as string), '"')), 'null')) as line
    from (
      select * from rows_that_land
    )
  )
