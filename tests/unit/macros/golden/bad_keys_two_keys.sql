select count(*) over () as bad, cast(k0 as string) as k0, cast(k1 as string) as k1, rows
  from (
    select k0, k1, count(*) as rows
    from (select `it's ``odd``` as k0, cast(`code` as string) as k1 from `shop`.`it's ``odd```)
    group by k0, k1
    having count(*) > 1 or (`k0` is null or `k1` is null)
  )
  order by k0, k1
  limit 5
