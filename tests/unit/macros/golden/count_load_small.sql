select coalesce(sum(n), 0) as inserted, coalesce(bool_or(bad), false) as refused
    from (
      select count(*) as n, count(*) > 1 or (`k0` is null) as bad
      from (
        select /*+ COALESCE(1) */ k0
        from (select `id` as k0 from `shop`.`orders__next`)
      )
      group by k0
    )
