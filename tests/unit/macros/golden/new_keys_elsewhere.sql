select 1 from (select `id` as k0 from `shop`.`orders__next`) as latest
  left semi join `shop`.`changed` as changed on changed.marker in (0, 4) and latest.k0 = changed.k0
  group by k0
  having count(*) > 1
  limit 1
