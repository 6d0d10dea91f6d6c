create table `shop`.`orders__next`
    using orc
  partitioned by (`day`, `it's ``odd```)
  as
  select 1 as `id`, 'a' as `status`
