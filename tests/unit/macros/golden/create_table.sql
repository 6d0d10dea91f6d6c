create table `shop`.`orders__next`
  as
  select 1 as `id`, 'a' as `status`
