select
    case when DBT_INTERNAL_SOURCE.`id` is not null
      then DBT_INTERNAL_SOURCE.`id` else DBT_INTERNAL_DEST.`id` end as `id`,
    case when DBT_INTERNAL_SOURCE.`id` is not null
      then DBT_INTERNAL_SOURCE.`status` else DBT_INTERNAL_DEST.`status` end as `status`
  from (
    select * from `shop`.`orders` as DBT_INTERNAL_DEST
    left anti join (select * from `shop`.`new_rows` where gone) as DBT_INTERNAL_SOURCE
      on (DBT_INTERNAL_DEST.`day` is null or DBT_INTERNAL_DEST.`day` > date'2026-01-01') and (DBT_INTERNAL_SOURCE.`ok`) and DBT_INTERNAL_SOURCE.`id` = DBT_INTERNAL_DEST.`id`
  ) as DBT_INTERNAL_DEST
  left join (select * from `shop`.`new_rows` where not coalesce(gone, false)) as DBT_INTERNAL_SOURCE on (DBT_INTERNAL_DEST.`day` is null or DBT_INTERNAL_DEST.`day` > date'2026-01-01') and (DBT_INTERNAL_SOURCE.`ok`) and DBT_INTERNAL_SOURCE.`id` = DBT_INTERNAL_DEST.`id`
  union all
  select
    DBT_INTERNAL_SOURCE.`id` as `id`,
    DBT_INTERNAL_SOURCE.`status` as `status` from (select * from `shop`.`new_rows` where not coalesce(gone, false)) as DBT_INTERNAL_SOURCE
  left anti join `shop`.`orders` as DBT_INTERNAL_DEST on (DBT_INTERNAL_DEST.`day` is null or DBT_INTERNAL_DEST.`day` > date'2026-01-01') and (DBT_INTERNAL_SOURCE.`ok`) and DBT_INTERNAL_SOURCE.`id` = DBT_INTERNAL_DEST.`id`
