select history.snapshot_id as version, snapshots.operation
  from `shop`.`orders__next`.`history` as history
  left join `shop`.`orders__next`.`snapshots` as snapshots on history.snapshot_id = snapshots.snapshot_id
  order by history.made_current_at desc
