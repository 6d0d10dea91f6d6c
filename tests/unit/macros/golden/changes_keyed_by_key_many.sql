select
      c0 as `id`,
      c1 as `status`,
      c2 as `price`,
      marker as `__rowMarker__`
  from (
    select /*+ REPARTITION_BY_RANGE(9, position, c0) */ *
    from (
      select
        latest.`id` as c0,
        latest.`status` as c1,
        latest.`price` as c2,
        changed.marker, 1 as position
      from `shop`.`orders__next` as latest
      join `shop`.`changed` as changed
        on changed.marker <> 2
        and latest.`id` = changed.k0
    )
    sort by position
  )
