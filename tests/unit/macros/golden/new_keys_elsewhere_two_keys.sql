select 1 from (select `id` as k0, cast(`code` as string) as k1 from `shop`.`orders__next`) as latest
  left semi join `shop`.`changed` as changed on changed.marker in (0, 4) and latest.k0 = changed.k0 and latest.k1 = changed.k1
  group by k0, k1
  having count(*) > 1
  limit 1
