select count(*) over () as bad, cast(k0 as string) as k0, published, new
  from (
    select k0, max(published) as published, max(place) filter (where place <> published) as new
    from (select `id` as k0, concat_ws(', ') as place from `shop`.`orders__next`)
    join (
      select k0, max(place) as published
      from (select `id` as k0, concat_ws(', ') as place from `shop`.`orders`)
      group by k0 having count(*) = 1
    ) using (k0)
    group by k0 having count(*) > 1
  )
  order by k0
  limit 5
