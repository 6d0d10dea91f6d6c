create table `shop`.`new_rows`   partitioned by (`day`, `it's ``odd```) as
  select 1 as `id`, 'a' as `status`
