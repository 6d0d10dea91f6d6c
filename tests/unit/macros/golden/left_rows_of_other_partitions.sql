select count(*) over () as bad, cast(k0 as string) as k0, cast(k1 as string) as k1, published, new
  from (
    select k0, k1, max(published) as published, max(place) filter (where place <> published) as new
    from (select `it's ``odd``` as k0, cast(`code` as string) as k1, concat_ws(', ', concat('day=', coalesce(cast(`day` as string), 'NULL')), concat('it\'s `odd`=', coalesce(cast(`it's ``odd``` as string), 'NULL'))) as place from `shop`.`it's ``odd```)
    join (
      select k0, k1, max(place) as published
      from (select `it's ``odd``` as k0, cast(`code` as string) as k1, concat_ws(', ', concat('day=', coalesce(cast(`day` as string), 'NULL')), concat('it\'s `odd`=', coalesce(cast(`it's ``odd``` as string), 'NULL'))) as place from `shop`.`orders`)
      group by k0, k1 having count(*) = 1
    ) using (k0, k1)
    group by k0, k1 having count(*) > 1
  )
  order by k0, k1
  limit 5
