select
      c0 as `status`,
      c1 as `code`,
      c2 as `id`,
      marker as `__rowMarker__`
  from (
    select /*+ REPARTITION_BY_RANGE(1, position, c1, c2) */ *
    from (
      select
        null as c0,
        k1 as c1,
        k0 as c2,
        marker, 0 as position
      from `shop`.`changed`
      where marker = 2
      union all
      select /*+ BROADCAST(changed) */
        latest.`status` as c0,
        cast(latest.`code` as string) as c1,
        latest.`id` as c2,
        changed.marker, 1 as position
      from (select * from `shop`.`orders__next` where _metadata.file_name not in ('a.parquet')) as latest
      join `shop`.`changed` as changed
        on changed.marker <> 2
        and cast(latest.`code` as string) = changed.k1
        and latest.`id` = changed.k0
    )
    sort by position
  )
