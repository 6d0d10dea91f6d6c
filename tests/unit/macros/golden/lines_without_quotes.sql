select
    if(
      (monotonically_increasing_id() & 8589934591) = 0,
      concat(concat(cast(x'' as string), concat_ws('|', if('id' = 'null' or contains('id', '|') or contains('id', '\r') or contains('id', '\n') or contains('id', '\\'), raise_error('The name of the column id would end too soon, or be taken for NULL. Set delimited.quote_character. Nothing was published.'), 'id'), if('status' = 'null' or contains('status', '|') or contains('status', '\r') or contains('status', '\n') or contains('status', '\\'), raise_error('The name of the column status would end too soon, or be taken for NULL. Set delimited.quote_character. Nothing was published.'), 'status'))), '\r\n', line),
      line
    ) as line
  from (
    select concat_ws('|', coalesce(cast(`id` as string), 'null'), coalesce(if(cast(`status` as string) = 'null' or contains(cast(`status` as string), '|') or contains(cast(`status` as string), '\r') or contains(cast(`status` as string), '\n') or contains(cast(`status` as string), '\\'), raise_error('A value of the column status would end too soon, or be taken for NULL. Set delimited.quote_character. Nothing was published.'), cast(`status` as string)), 'null')) as line
    from (
      select * from rows_that_land
    )
  )
