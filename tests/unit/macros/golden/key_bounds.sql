select
    cast(min(cast(`id` as int)) as string) as first0, cast(max(cast(`id` as int)) as string) as last0,
    cast(min(cast(`it's ``odd``` as date)) as string) as first1, cast(max(cast(`it's ``odd``` as date)) as string) as last1
  from `shop`.`new_rows`
