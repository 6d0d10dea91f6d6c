select count(*) over () as bad, cast(k0 as string) as k0, rows
  from (
    select k0, count(*) as rows
    from (select `id` as k0 from `shop`.`orders__next`)
    group by k0
    having count(*) > 1 or (`k0` is null)
  )
  order by k0
  limit 5
