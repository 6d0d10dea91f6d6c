select
    DBT_INTERNAL_DEST.`id` as `id`,
    DBT_INTERNAL_DEST.`day` as `day` from `shop`.`orders` as DBT_INTERNAL_DEST
  left anti join `shop`.`new_rows` as DBT_INTERNAL_SOURCE on DBT_INTERNAL_SOURCE.`day` <=> DBT_INTERNAL_DEST.`day` and (IN_BATCH)
  union all
  select
    DBT_INTERNAL_SOURCE.`id` as `id`,
    DBT_INTERNAL_SOURCE.`day` as `day` from `shop`.`new_rows` as DBT_INTERNAL_SOURCE
