create table `shop`.`orders__next`
    using delta
    options (compression "gzip"
    )
  tblproperties (
    'delta.appendOnly' = 'true'
  )
  partitioned by (`day`)
  clustered by (`id`, `it's ``odd```) into 8 buckets
  comment 'It\'s the orders,\nof all shops'
  as
  select 1 as `id`, 'a' as `status`
