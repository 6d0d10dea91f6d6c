select
    min(cast(`id` as int)) as first0, max(cast(`id` as int)) as last0,
    min(unix_date(cast(`it's ``odd``` as date))) as first1, max(unix_date(cast(`it's ``odd``` as date))) as last1
  from `shop`.`new_rows`
