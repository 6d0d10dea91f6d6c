select coalesce(sum(n), 0) as inserted, coalesce(bool_or(bad), false) as refused
    from (
      select count(*) as n, count(*) > 1 or (`k0` is null or `k1` is null) as bad
      from (
        select /*+ REPARTITION(k0, k1) */ k0, k1
        from (select `it's ``odd``` as k0, cast(`code` as string) as k1 from `shop`.`orders__next`)
      )
      group by k0, k1
    )
