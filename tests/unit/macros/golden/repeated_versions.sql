select count(*) over () as bad, k0, k1, rows
  from (
    select k0, k1, max(rows) as rows
    from (
      select any_value(cast(id as string)) as k0, any_value(cast(upper(name) || '-' as string)) as k1, count(*) as rows
      from `shop`.`orders__next`
      group by `it's ``odd```
      having count(*) > 1 or `it's ``odd``` is null
    )
    group by k0, k1
  )
  order by k0, k1
  limit 5
