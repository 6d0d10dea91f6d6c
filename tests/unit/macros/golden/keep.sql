create table `shop`.`new_rows` using parquet as
  select 1 as `id`, 'a' as `status`
