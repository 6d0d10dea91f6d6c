select
    string(min(cast(`id` as int))) as first0, string(max(cast(`id` as int))) as last0,
    string(min(cast(`it's ``odd``` as date))) as first1, string(max(cast(`it's ``odd``` as date))) as last1
  from `shop`.`new_rows`
